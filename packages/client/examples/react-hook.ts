// A React hook: the newest events of some kinds, as they happen. In a component:
//   const { events, error } = useEvents({ url: "http://127.0.0.1:7052", kinds: ["*.failed"] });
import { connect, type TapedeckEvent } from "@tapedeck-dev/client";
import { useEffect, useState } from "react";

type EventsOfHook = {
  /** The newest last. */
  readonly events: readonly TapedeckEvent[];
  /** Why there will be no more of them. */
  readonly error: string | undefined;
};

export function useEvents(options: {
  readonly url: string;
  readonly kinds: readonly string[];
  readonly last?: number;
}): EventsOfHook {
  const { url, kinds, last = 20 } = options;
  const [state, setState] = useState<EventsOfHook>({ events: [], error: undefined });
  // An array is another one on each render.
  const kindList = kinds.join();

  useEffect(() => {
    const tapedeck = connect({ url });
    const filter = { kinds: kindList.split(",") };
    async function read(): Promise<void> {
      let events = await tapedeck.newest({ ...filter, last });
      setState({ events, error: undefined });
      const after = events.at(-1)?.position ?? "now";
      for await (const event of tapedeck.events({ ...filter, after })) {
        events = [...events, event].slice(-last);
        setState({ events, error: undefined });
      }
    }
    read().catch((error) => setState(({ events }) => ({ events, error: String(error) })));
    return () => tapedeck.close();
  }, [url, kindList, last]);

  return state;
}
