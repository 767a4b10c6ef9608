import { connect } from "node:net";

const timeoutMs = 3_000;

/** Reports whether anything listens at "host:port". */
export function connectTo(address: string): Promise<boolean> {
  const at = address.lastIndexOf(":");
  const host = address.slice(0, at).replace(/[[\]]/g, "");
  return new Promise((resolve) => {
    const socket = connect({ host, port: Number(address.slice(at + 1)), timeout: timeoutMs });
    const end = (is: boolean) => () => {
      socket.destroy();
      resolve(is);
    };
    socket.once("connect", end(true));
    socket.once("error", end(false));
    socket.once("timeout", end(false));
  });
}
