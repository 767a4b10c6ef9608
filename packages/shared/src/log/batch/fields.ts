/**
 * Goes through an encoded protobuf message field by field without decoding it. The state of the present field is in the
 * object, so that no unused field costs anything.
 */
export class Fields {
  #bytes: Uint8Array;
  #at: number;
  #end: number;
  /** The present field's number. */
  field = 0;
  /** Whether it has content: text, bytes or a message. */
  isContent = false;
  /** Where the content begins. */
  start = 0;
  /** Where the content ends. */
  end = 0;
  /** The number that a field without content holds, when it is a varint. */
  value = 0;

  constructor(bytes: Uint8Array, start = 0, end = bytes.length) {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
  }

  /** Goes on with another message, which stands in the bytes from `start` to `end`. */
  begin(bytes: Uint8Array, start: number, end: number): void {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
  }

  /** Goes to the next field; false at the end. @throws RangeError when the bytes are not a message */
  next(): boolean {
    if (this.#at >= this.#end) return false;
    const tag = this.#varint();
    this.field = tag >>> 3;
    if (this.field === 0) throw new RangeError("a field without a number");
    this.isContent = false;
    switch (tag & 7) {
      case 0:
        this.value = this.#varint();
        break;
      case 1:
        this.#at += 8;
        break;
      case 2:
        this.isContent = true;
        this.end = this.#varint();
        this.start = this.#at;
        this.end += this.start;
        this.#at = this.end;
        break;
      case 5:
        this.#at += 4;
        break;
      default:
        throw new RangeError(`a field of the unknown type ${tag & 7}`);
    }
    if (this.#at > this.#end) throw new RangeError("a field goes on after the end");
    return true;
  }

  /** The next of a field's packed numbers, which are the bytes here; undefined at the end. @throws RangeError as `next` */
  nextNumber(): number | undefined {
    return this.#at < this.#end ? this.#varint() : undefined;
  }

  #varint(): number {
    let value = 0;
    let factor = 1;
    for (let length = 0; length < 10 && this.#at < this.#end; length++) {
      const byte = this.#bytes[this.#at++] as number;
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
      factor *= 128;
    }
    throw new RangeError("a number without an end");
  }
}
