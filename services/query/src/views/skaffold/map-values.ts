export function mapValues<T, U>(table: { readonly [name: string]: T }, change: (value: T) => U): { [name: string]: U } {
  return Object.fromEntries(Object.entries(table).map(([name, value]) => [name, change(value)]));
}
