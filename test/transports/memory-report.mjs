// Loaded before a service that is started with --expose-gc: answers "memory" with the bytes in use.
process.on("message", (message) => {
  if (message !== "memory") return;
  // Runs twice: the second run collects what the first has finalized.
  globalThis.gc();
  globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  process.send(heapUsed + external);
});
