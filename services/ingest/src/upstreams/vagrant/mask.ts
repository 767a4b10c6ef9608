export function mask(_name: string, bytes: Uint8Array): { readonly bytes: Uint8Array; readonly redacted: number } {
  return { bytes, redacted: 0 };
}
