import zlib from "node:zlib";
import { decompress as decompressInScript } from "fzstd";

/** More makes what is typical of events 2 % smaller, and takes a third longer. */
const level = 1;

/** Node's own Zstandard, which Node 22.15 and 23.8 brought. */
type NativeZstd = {
  readonly zstdCompressSync?: (bytes: Uint8Array, options: object) => Uint8Array;
  readonly zstdDecompressSync?: (frame: Uint8Array, options: object) => Uint8Array;
};

/** Zstandard, as far as this Node has it. */
export type Zstd = {
  /** Undefined on an older Node: what it writes stays uncompressed. */
  readonly compress: ((bytes: Uint8Array) => Uint8Array) | undefined;
  /** Any Node reads what a newer one has written, an older one some four times slower. @throws when the bytes are not a frame of so many bytes */
  readonly decompress: (frame: Uint8Array, size: number) => Uint8Array;
};

/** What a `node:zlib` has. */
export function zstdOf(module: object): Zstd {
  const { zstdCompressSync, zstdDecompressSync } = module as NativeZstd;
  return {
    compress:
      zstdCompressSync &&
      ((bytes) =>
        zstdCompressSync(bytes, {
          params: { [zlib.constants.ZSTD_c_compressionLevel]: level },
          pledgedSrcSize: bytes.byteLength,
          chunkSize: Math.max(1024, bytes.byteLength >>> 1),
        })),
    decompress(frame, size) {
      const bytes =
        zstdDecompressSync === undefined
          ? decompressInScript(frame)
          : // With one byte to spare zlib sees that it is at the end, and reserves no more.
            zstdDecompressSync(frame, { chunkSize: Math.max(64, size + 1), maxOutputLength: size });
      if (bytes.byteLength !== size) throw new RangeError(`${bytes.byteLength} bytes instead of ${size}`);
      return bytes;
    },
  };
}

export const zstd = zstdOf(zlib);
