package plot

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// Colors of the series, which color-blind readers can tell apart (Okabe and Ito), and of
// the other elements.
var colors = []string{"#0072b2", "#56b4e9", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#000000"}

const dark, pale, grid = "#222222", "#666666", "#dddddd"

func color(series int) string { return colors[series%len(colors)] }

// Sizes in pixels. A letter is about this wide at the font's size.
const (
	width    = 900
	margin   = 16
	fontSize = 12
	letter   = 6.6
)

// canvas collects the elements of an SVG.
type canvas struct{ strings.Builder }

func (c *canvas) add(format string, args ...any) { fmt.Fprintf(c, format+"\n", args...) }

// escape escapes text for XML.
func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // writing to a builder can't fail
	return b.String()
}

// text writes text at a position; anchor is start, middle or end.
func (c *canvas) text(x, y float64, anchor, fill, text string) {
	c.add(`<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s">%s</text>`, x, y, anchor, fill, escape(text))
}

func (c *canvas) line(x1, y1, x2, y2 float64, stroke string, thick float64) {
	c.add(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%g"/>`, x1, y1, x2, y2, stroke, thick)
}

// head draws the title and the legend, and returns the y coordinate where the rest begins.
func (c *canvas) head(title string, series []string) float64 {
	c.add(`<text x="%d" y="%d" fill="%s" font-size="15" font-weight="bold">%s</text>`, margin, margin+10, dark, escape(title))
	x, y := float64(margin), float64(margin+34)
	for i, name := range series {
		wide := 34 + letter*float64(len([]rune(name)))
		if x+wide > width-margin && x > margin {
			x, y = margin, y+18
		}
		c.add(`<rect x="%.1f" y="%.1f" width="12" height="12" fill="%s"/>`, x, y-10, color(i))
		c.text(x+18, y, "start", dark, name)
		x += wide
	}
	return y + 20
}

// svg returns the complete document.
func (c *canvas) svg(height float64) string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%.0f" viewBox="0 0 %d %.0f" font-family="sans-serif" font-size="%d">
<rect width="100%%" height="100%%" fill="#ffffff"/>
%s</svg>
`, width, height, width, height, fontSize, c.String())
}

// point formats one point of a polyline.
func point(x, y float64) string { return fmt.Sprintf("%.1f,%.1f", x, y) }
