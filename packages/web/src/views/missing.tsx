import { useTitle } from "../data/tab.ts";
import { viewMeant, views } from "../model/missing.ts";

/** What is shown at a path that names no view: where the visitor may have meant to go, and all there is. */
export function MissingView({ path }: { readonly path: string }) {
  useTitle("Nothing here");
  const meant = viewMeant(path);
  return (
    <div class="empty missing">
      <h1>There is nothing at {path}</h1>
      {meant !== undefined && (
        <p>
          Did you mean <a href={meant.path}>{meant.name}</a>: {meant.shows}?
        </p>
      )}
      <ul>
        {views.map(({ path, name, shows }) => (
          <li key={path}>
            <a href={path}>{name}</a> <span class="quiet-text">{shows}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}
