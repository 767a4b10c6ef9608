import type { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { connect, type TLSSocket } from "node:tls";

/** The certificate that a listener presents to new connections. */
export async function shownCertificate(address: string): Promise<X509Certificate> {
  const [host = "", port = ""] = address.split(":");
  const socket: TLSSocket = connect({ host, port: Number(port), rejectUnauthorized: false, ALPNProtocols: ["h2"] });
  await once(socket, "secureConnect");
  const certificate = socket.getPeerX509Certificate();
  socket.destroy();
  if (certificate === undefined) throw new Error(`${address} shows no certificate`);
  return certificate;
}
