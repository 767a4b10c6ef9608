// Loaded before a service that was started with --expose-gc: answers "memory" with the bytes that are in use.
process.on("message", (message) => {
  if (message !== "memory") return;
  // Twice: what the first has finalized is garbage for the second.
  globalThis.gc();
  globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  process.send(heapUsed + external);
});
