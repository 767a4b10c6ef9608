/** The most items of a page of any list, and the most events of a page of events. */
export const largestPage = 1_000;
