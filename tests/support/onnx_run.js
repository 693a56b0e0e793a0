// SPDX-License-Identifier: MIT
// Runs ONNX files in ONNX Runtime: node onnx_run.js NODE_MODULES JOB.json, where the job is a list of
// {model, input, shape, output}: files of raw float32, little-endian. Two threads.
const fs = require("fs");
const path = require("path");

async function main() {
    const ort = require(path.join(process.argv[2], "onnxruntime-node"));
    for (const job of JSON.parse(fs.readFileSync(process.argv[3]))) {
        const session = await ort.InferenceSession.create(job.model,
            {intraOpNumThreads: 2, interOpNumThreads: 1, executionProviders: ["cpu"]});
        const bytes = fs.readFileSync(job.input);
        const floats = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
        const feeds = {[session.inputNames[0]]: new ort.Tensor("float32", floats, job.shape)};
        const result = (await session.run(feeds))[session.outputNames[0]];
        fs.writeFileSync(job.output, new Uint8Array(result.data.buffer, result.data.byteOffset, result.data.byteLength));
    }
}

main().catch((error) => {
    console.error(error);
    process.exit(1);
});
