import { useEffect, useState } from "preact/hooks";
import { ErrorNotice, Loading } from "../../parts/small.tsx";
import type { TrendsView as View } from "./trends.tsx";

/** Loads Trends, with its chart code, when it is first opened. */
export function TrendsView({ query }: { readonly query: string }) {
  const [loaded, setLoaded] = useState<{ readonly View: typeof View }>();
  const [error, setError] = useState<string>();
  useEffect(() => {
    import("./trends.tsx").then(
      ({ TrendsView: View }) => setLoaded({ View }),
      () => setError("A part of the page could not be loaded: load it again."),
    );
  }, []);
  if (error !== undefined) return <ErrorNotice text={error} />;
  return loaded === undefined ? <Loading what="the trends" /> : <loaded.View query={query} />;
}
