import { randomInt } from "node:crypto";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:net";

/**
 * A port for a server that leaves it and comes back to it. It is below the range from which the system gives ports to those who
 * ask for any and to connections, and no other call of this function gets it before this process ends, in whichever
 * process.
 */
export async function ownPort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 32_000);
    if ((await reserved(port)) && (await isFree(port))) return port;
  }
}

/**
 * Whether this process has reserved the port. The mark is the UDP port of the same number, which nothing here uses: the
 * system gives it to one process, and takes it back when the process ends, however it ends.
 */
async function reserved(port: number): Promise<boolean> {
  const mark = createSocket("udp4").unref();
  mark.bind({ port, address: "127.0.0.1", exclusive: true });
  return succeeds(once(mark, "listening"));
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, "127.0.0.1");
  if (!(await succeeds(once(server, "listening")))) return false;
  server.close();
  await once(server, "close");
  return true;
}

function succeeds(done: Promise<unknown>): Promise<boolean> {
  return done.then(
    () => true,
    () => false,
  );
}
