import { useEffect, useRef, useState } from "preact/hooks";
import { useTitle } from "../data/tab.ts";
import { about, type ServerInfo, signIn } from "../data/tapedeck.ts";
import { refusalText } from "../model/refusal.ts";
import { CopyButton } from "../parts/small.tsx";

/** Where developers are hidden, a token that names none sees nobody. */
function commandFor(privacy: ServerInfo["privacy"]): string {
  const whose = privacy === undefined || privacy.developers === "shown" ? "" : ' --developer "$USER"';
  return `tapedeck token create --name me --role viewer${whose} -q`;
}

export function SignInView() {
  const [error, setError] = useState<string>();
  const [isAsking, setAsking] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  useTitle("Sign in");
  const command = commandFor(about.value?.privacy);
  useEffect(() => {
    input.current?.focus();
  }, []);
  const submit = async () => {
    setAsking(true);
    setError(undefined);
    try {
      await signIn(input.current?.value.trim() ?? "");
    } catch (error) {
      setError(refusalText(error));
    }
    setAsking(false);
  };
  return (
    <form
      class="sign-in"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <h1>Sign in</h1>
      <ProviderLink />
      <p>This Tapedeck shows what it records to holders of a token.</p>
      <label>
        Token
        <input
          ref={input}
          type="password"
          name="token"
          autocomplete="current-password"
          placeholder="tdk_…"
          required
          spellcheck={false}
        />
      </label>
      {error !== undefined && (
        <p class="notice bad" role="alert">
          {error}
        </p>
      )}
      <button type="submit" disabled={isAsking}>
        Sign in
      </button>
      <p class="quiet-text">No token? An admin makes one, or you on Tapedeck's own machine:</p>
      <p class="command">
        <code>{command}</code> <CopyButton text={() => command}>Copy</CopyButton>
      </p>
    </form>
  );
}

/** A link and no button: signing in by a provider leaves this page, and comes back to where it was. */
function ProviderLink() {
  const provider = about.value?.signIn;
  if (provider === undefined) return null;
  const back = encodeURIComponent(location.pathname + location.search);
  return (
    <p>
      <a class="provider" href={`${provider.url}?to=${back}`}>
        Sign in with {provider.title}
      </a>
    </p>
  );
}
