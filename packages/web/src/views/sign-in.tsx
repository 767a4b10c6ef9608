import { useEffect, useRef, useState } from "preact/hooks";
import { signIn } from "../data/tapedeck.ts";
import { CopyButton } from "../parts/small.tsx";

const command = "tapedeck token create --name me --role viewer -q";

export function SignInView() {
  const [problem, setProblem] = useState<string>();
  const [isAsking, setAsking] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    document.title = "Sign in · Tapedeck";
    input.current?.focus();
  }, []);
  const submit = async () => {
    setAsking(true);
    setProblem(undefined);
    try {
      await signIn(input.current?.value.trim() ?? "");
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
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
      {problem !== undefined && (
        <p class="notice bad" role="alert">
          {problem}
        </p>
      )}
      <button type="submit" disabled={isAsking}>
        Sign in
      </button>
      <p class="quiet-text">
        No token? An admin makes one, or you on Tapedeck's own machine: <code>{command}</code>{" "}
        <CopyButton text={() => command}>Copy</CopyButton>
      </p>
    </form>
  );
}
