/** For gRPC methods whose messages stay bytes, so that what is recorded and served is exactly what the upstream sent. */
export function asBytes(bytes: Buffer): Buffer {
  return bytes;
}
