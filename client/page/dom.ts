/** The element with this id in `index.html`. @throws when the page has none of this kind. */
export function byId<E extends HTMLElement>(id: string, kind: new () => E): E {
  const element = document.getElementById(id)
  if (element instanceof kind) return element
  throw new Error(`the page lacks #${id}`)
}

type Child = Node | string

/** A new element with attributes and children. */
export function make<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Readonly<Record<string, string>> = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value)
  element.append(...children)
  return element
}

/** Sets a text only when it differs: screen readers announce every change of a live region. */
export function setText(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text
}

/**
 * A table whose rows become cards in a narrow window. The roles are explicit, because a table with another `display`
 * loses its own. Numbers are aligned to the right.
 */
export function makeTable(caption: string, columns: readonly { title: string; isNumber?: boolean }[]) {
  const body = make('tbody', { role: 'rowgroup' })
  const head = columns.map(({ title, isNumber }) =>
    make('th', { scope: 'col', role: 'columnheader', ...(isNumber ? { class: 'number' } : {}) }, title),
  )
  const table = make(
    'table',
    { role: 'table' },
    make('caption', { class: 'visually-hidden' }, caption),
    make('thead', { role: 'rowgroup' }, make('tr', { role: 'row' }, ...head)),
    body,
  )
  /** The first cell is the row's header. */
  const row = (cells: readonly Child[]): HTMLTableRowElement => {
    const made = cells.map((content, i) => {
      const attributes = {
        'data-title': columns[i]?.title ?? '',
        ...(columns[i]?.isNumber ? { class: 'number' } : {}),
      }
      return i === 0
        ? make('th', { ...attributes, scope: 'row', role: 'rowheader' }, content)
        : make('td', { ...attributes, role: 'cell' }, content)
    })
    return make('tr', { role: 'row' }, ...made)
  }
  return { table, body, row }
}
