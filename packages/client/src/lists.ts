import type { TapedeckEvent } from "./event.ts";
import { type Filter, filterOf, type PositionOrTime, positionOrTimeText } from "./filter.ts";
import type { Http, Parameters } from "./http.ts";
import type { OperationsOptions, SessionsOptions, SourcesOptions } from "./resources.ts";

type Page<Item> = { readonly items: readonly Item[]; readonly nextPage?: string };

export type ListOptions = SourcesOptions & SessionsOptions & OperationsOptions;

/** A list, page by page as it is taken. Throws as `Http` does. */
export async function* list<Item>(
  { get }: Http,
  name: "sources" | "sessions" | "operations",
  options: ListOptions,
  signal: AbortSignal,
): AsyncGenerator<Item, void> {
  let page: string | undefined;
  try {
    do {
      const parameters = { ...parametersOf(options), ...(page !== undefined && { page }) };
      const { items, nextPage } = (await get(`/api/v1/${name}`, parameters, signal)) as Page<Item>;
      yield* items;
      page = nextPage;
    } while (page !== undefined && !signal.aborted);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

export type NewestOptions = Filter & { readonly last: number };

/** The newest events that match, in their order. Throws as `Http` does. */
export async function newestEvents(
  { get }: Http,
  options: NewestOptions,
  signal: AbortSignal | undefined,
): Promise<readonly TapedeckEvent[]> {
  const { last, ...filter } = options;
  const parameters = { ...parametersOf(filterOf(filter) as ListOptions), last: String(last) };
  return ((await get("/api/v1/events", parameters, signal)) as Page<TapedeckEvent>).items;
}

/** Those of all lists. */
type ListParameters = Omit<ListOptions, "kinds"> & {
  readonly kinds?: readonly string[];
  readonly reasons?: readonly string[];
};

/** Fields of a filter are plural, parameters of a URL singular. */
export function parametersOf({
  signal: _,
  at,
  from,
  to,
  labels,
  pageSize,
  perSource,
  runner,
  loop,
  ...filter
}: ListParameters): Parameters {
  return {
    ...Object.fromEntries(Object.entries(filter).map(([field, values]) => [field.slice(0, -1), values])),
    label: labels && Object.entries(labels).map(([label, value]) => `${label}=${value}`),
    runner: numberText(runner),
    loop: numberText(loop),
    at: textOf(at),
    from: textOf(from),
    to: textOf(to),
    limit: numberText(pageSize),
    per_source: numberText(perSource),
  };
}

function numberText(number: number | undefined): string | undefined {
  return number === undefined ? undefined : String(number);
}

function textOf(at: PositionOrTime | undefined): string | undefined {
  return at === undefined ? undefined : positionOrTimeText(at);
}
