/**
 * The lines of a text that comes in pieces: ends at \n alone, so \r\n leaves an \r. Node's readline also ends them at U+2028 and
 * U+2029, which JSON has as they are.
 */
export async function* linesOf(pieces: AsyncIterable<string>): AsyncGenerator<string, void> {
  let parts: string[] = [];
  for await (const piece of pieces) {
    const [end = "", ...others] = piece.split("\n");
    parts.push(end);
    for (const other of others) {
      yield parts.join("");
      parts = [other];
    }
  }
  const last = parts.join("");
  if (last !== "") yield last;
}
