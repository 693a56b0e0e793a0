// SPDX-License-Identifier: MIT
//
// ONNX Runtime's side of bench/inference.py: a line of standard input is a number of answers; once
// all are given, each is told by a JSON line, as `paceline bench infer --paced` does, on the same
// made-up batch.
//
//     node ort_infer.js FOLDER-WITH-ONNXRUNTIME MODEL.onnx BATCH THREADS
"use strict";
const readline = require("readline");
const [folder, file, batch, threads] = process.argv.slice(2);
const ort = require(folder + "/node_modules/onnxruntime-node");

function value(i) {
    return Math.fround((Math.imul(i, 2654435761) >>> 8) / 8388608 - 1);
}

async function main() {
    const session = await ort.InferenceSession.create(file, {
        intraOpNumThreads: Number(threads),
        interOpNumThreads: 1,
        executionMode: "sequential",
        graphOptimizationLevel: "all",
    });
    const n = Number(batch), floats = n * 3 * 32 * 32;
    const x = new ort.Tensor("float32", Float32Array.from({length: floats}, (_, i) => value(i)),
                             [n, 3, 32, 32]);
    const first = (await session.run({x})).y.data;

    console.log(JSON.stringify({ready: true, outputs: Array.from(first.slice(-first.length / n))}));
    for await (const line of readline.createInterface({input: process.stdin})) {
        const seconds = [];

        for (let i = 0; i < Number(line); i++) {
            const began = process.hrtime.bigint();

            await session.run({x});
            seconds.push(Number(process.hrtime.bigint() - began) / 1e9);
        }
        console.log(seconds.map(s => JSON.stringify({seconds: s})).join("\n"));
    }
}

main().catch(error => {
    console.error(String(error));
    process.exit(1);
});
