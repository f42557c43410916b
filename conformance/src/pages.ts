/** How many entries a row makes to be sure that a listing crosses from one page to the next: core pages by a thousand keys. */
export const PAGE_SIZE = 1000
