import { isUtf8 } from "node:buffer";
import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { pipeline } from "node:stream";
import { createGunzip } from "node:zlib";

/** A line of a file that can't be read, and why. */
export class FileLineError extends Error {
  override readonly name = "FileLineError";
  constructor(file: string, line: number, reason: string) {
    super(`${file}:${line}: ${reason}`);
  }
}

/** A line with its number, as text and as its bytes. */
export type FileLine = { readonly number: number; readonly text: string; readonly bytes: Uint8Array };

/**
 * The lines of a UTF-8 file, from the first or from an offset in bytes, without their ends. A gzip file is unpacked. `bytes`
 * has the line with its end and is valid until the next line.
 * @throws FileLineError for a line that is too long or not UTF-8, and where a gzip file is broken; AbortError when the
 * signal aborts; and the system's errors
 */
export async function* fileLines(
  file: string,
  maxBytes: number,
  from = 0,
  signal?: AbortSignal,
): AsyncGenerator<FileLine, void> {
  let number = 0;
  const line = (bytes: Buffer): FileLine => {
    number++;
    if (!isUtf8(bytes)) throw new FileLineError(file, number, "it is not UTF-8");
    const end = bytes.at(-1) === newline ? bytes.byteLength - 1 : bytes.byteLength;
    return { number, text: bytes.toString("utf8", 0, end), bytes };
  };
  let partial: Buffer[] = [];
  let size = 0;
  const raw = createReadStream(file, { highWaterMark: 256 * 1024, start: from, ...(signal && { signal }) });
  // The loop below gets its end and its errors.
  const chunks = from === 0 && (await isGzip(file)) ? pipeline(raw, createGunzip(), () => {}) : raw;
  try {
    for await (const chunk of chunks as AsyncIterable<Buffer>) {
      let start = 0;
      for (let end = chunk.indexOf(newline) + 1; end > 0; end = chunk.indexOf(newline, start) + 1) {
        const whole =
          partial.length === 0 ? chunk.subarray(start, end) : Buffer.concat([...partial, chunk.subarray(0, end)]);
        partial = [];
        size = 0;
        start = end;
        yield line(whole);
      }
      if (start === chunk.byteLength) continue;
      partial.push(chunk.subarray(start));
      size += chunk.byteLength - start;
      if (size > maxBytes) throw new FileLineError(file, number + 1, `it is longer than ${maxBytes} bytes`);
    }
  } catch (error) {
    if (!isOfZlib(error)) throw error;
    throw new FileLineError(file, number + 1, "the compressed file is damaged or truncated here");
  } finally {
    raw.destroy();
  }
  if (size > 0) yield line(Buffer.concat(partial));
}

const newline = 10;

async function isGzip(file: string): Promise<boolean> {
  await using handle = await open(file);
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(2), 0, 2, 0);
  return bytesRead === 2 && buffer[0] === 0x1f && buffer[1] === 0x8b;
}

function isOfZlib(error: unknown): boolean {
  const { code = "" } = error as NodeJS.ErrnoException;
  return code.startsWith("Z_");
}
