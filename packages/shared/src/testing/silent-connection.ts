import { once } from "node:events";
import { connect } from "node:net";

export type SilentConnection = Disposable & {
  /** The other side has closed it. */
  readonly isOver: () => boolean;
};

/** Connects to "host:port", and says nothing. */
export async function silentConnection(address: string): Promise<SilentConnection> {
  const { hostname, port } = new URL(`tcp://${address}`);
  const socket = connect(Number(port), hostname)
    .resume()
    .on("error", () => {});
  let isOver = false;
  socket.once("close", () => {
    isOver = true;
  });
  await once(socket, "connect");
  return { isOver: () => isOver, [Symbol.dispose]: () => void socket.destroy() };
}
