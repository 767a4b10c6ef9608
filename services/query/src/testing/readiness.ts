export async function readiness(health: string): Promise<{ status: number; checks: Record<string, string> }> {
  const response = await fetch(`http://${health}/readyz`);
  return { status: response.status, ...((await response.json()) as { checks: Record<string, string> }) };
}
