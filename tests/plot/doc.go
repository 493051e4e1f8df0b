// Package plot draws charts as SVG for the pages in docs: [Bars] and [Lines]. The
// same figures give the same text, so a page changes when they do and not otherwise.
// A chart stands on white, whatever its page does, and every mark has a title that a
// browser shows when it is pointed at.
package plot
