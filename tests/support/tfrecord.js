// SPDX-License-Identifier: MIT
// node tfrecord.js NODE_MODULES FILE…: reads event files with npm's tfrecord package, which checks both CRCs of every
// record; prints how many records there are.
"use strict";
const [modules, ...files] = process.argv.slice(2);
const {RecordReader} = require(modules + "/tfrecord");

(async () => {
  let count = 0;
  for (const file of files) {
    const reader = await RecordReader.create(file);
    while (await reader.readRecord() !== null) count++;
  }
  console.log(count);
})().catch(error => { console.error(error); process.exit(1); });
