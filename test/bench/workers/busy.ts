/** Another program that keeps a core busy. */

export function spin(ms: number): void {
  for (const end = performance.now() + ms; performance.now() < end; );
}
