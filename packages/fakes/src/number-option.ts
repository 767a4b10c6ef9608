/** The number that a command-line option was given. Throws for anything but a number from 0 on. */
export function numberOption(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isFinite(value) || value < 0) throw new Error(`--${name} takes a number, not ${text}`);
  return value;
}

/** The port of `--listen`, which takes 127.0.0.1 and a port, or the port alone. */
export function listenPort(address: string): number {
  return numberOption("listen", address.replace(/^(127\.0\.0\.1|localhost):/, ""));
}
