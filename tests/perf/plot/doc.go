// Package plot draws charts as SVG for the pages in docs: [Bars] and [Lines]. We keep the
// output deterministic, so that a page changes only when the figures do. A chart has a
// white background regardless of the page's style, and every mark has a title that a
// browser shows on hover.
package plot
