/** A browser's cookies and redirects, as far as signing in needs them, so that a test can change each step. */
export class ProviderBrowser {
  readonly #cookies = new Map<string, Map<string, string>>();

  /** Sends one request, without following redirects. */
  async ask(url: string, init: RequestInit = {}): Promise<Response> {
    const { host } = new URL(url);
    const answer = await fetch(url, {
      ...init,
      redirect: "manual",
      headers: { ...init.headers, cookie: this.cookies(host) },
    });
    const held = this.#cookies.get(host) ?? new Map<string, string>();
    this.#cookies.set(host, held);
    for (const set of answer.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(set) ?? [];
      if (value === "") held.delete(name);
      else held.set(name, value);
    }
    return answer;
  }

  /** The header `cookie` for a host. */
  cookies(host: string): string {
    return [...(this.#cookies.get(host) ?? [])].map(([name, value]) => `${name}=${value}`).join("; ");
  }

  forget(host: string): void {
    this.#cookies.delete(host);
  }

  /** Logs in at the provider's own pages as a person; returns the redirect address, without requesting it. */
  async logIn(from: string, login: string, callback: string): Promise<string> {
    let at = from;
    let answer = await this.ask(at);
    for (let step = 0; step < 20; step++) {
      const location = answer.headers.get("location");
      if (location !== null) {
        at = new URL(location, at).href;
        if (at.startsWith(callback)) return at;
        answer = await this.ask(at);
        continue;
      }
      const [, action = ""] = /<form[^>]*action="([^"]+)"/.exec(await answer.text()) ?? [];
      const prompt = at.includes("/interaction/") && !this.#hasLoggedIn.has(login) ? "login" : "consent";
      this.#hasLoggedIn.add(login);
      at = new URL(action, at).href;
      const body = new URLSearchParams({ prompt, ...(prompt === "login" && { login, password: "any" }) });
      answer = await this.ask(at, { method: "POST", body });
    }
    throw new Error(`the provider never answered: the last address was ${at}`);
  }

  readonly #hasLoggedIn = new Set<string>();
}
