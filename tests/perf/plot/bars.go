package plot

import "math"

// Bars is a chart of grouped horizontal bars: a group has one bar for each series.
type Bars struct {
	Title  string
	Unit   string // of the values
	Log    bool   // the axis is logarithmic
	Series []string
	Groups []Group
	// Label formats the value beside a bar; the default is Number.
	Label func(float64) string
}

// Group is the bars under one label, in the order of the series.
type Group struct {
	Label string
	Bars  []Bar
}

// Bar is a value. NaN, and 0 on a logarithmic axis, mean no value: the chart shows a dash.
type Bar struct {
	Value float64
	// To, if not 0, is a second, greater value; a thin line extends from the bar to it.
	To float64
}

// thick is the height of a bar with the gap below it; between separates two groups.
const thick, between = 14, 12

// SVG draws the chart.
func (b *Bars) SVG() string {
	var c canvas
	top := c.head(b.Title, b.Series) + 16
	height := float64(len(b.Groups)) * (thick*float64(len(b.Series)) + between)
	s := b.scale()
	for _, v := range s.ticks() {
		x := s.at(v)
		c.line(x, top, x, top+height, grid, 1)
		c.text(x, top-4, "middle", pale, Number(v))
		c.text(x, top+height+14, "middle", pale, Number(v))
	}
	c.text((s.from+s.to)/2, top+height+32, "middle", pale, b.Unit)
	y := top + between/2
	for _, g := range b.Groups {
		c.text(s.from-8, y+thick*float64(len(b.Series))/2+3, "end", dark, g.Label)
		for i, name := range b.Series {
			bar := Bar{Value: math.NaN()}
			if i < len(g.Bars) {
				bar = g.Bars[i]
			}
			b.bar(&c, &s, y, i, bar, name+", "+g.Label)
			y += thick
		}
		y += between
	}
	c.line(s.from, top, s.from, top+height, dark, 1)
	return c.svg(top + height + 32 + margin)
}

// bar draws one bar, with its label beside it.
func (b *Bars) bar(c *canvas, s *scale, y float64, series int, bar Bar, title string) {
	middle := y + thick/2 + 3
	if !s.shows(bar.Value) {
		c.text(s.from+4, middle, "start", pale, "–")
		return
	}
	text, from, to := b.label(bar.Value), s.at(max(s.lo, min(0, bar.Value))), s.at(bar.Value)
	if s.log {
		from = s.from
	}
	end := max(from, to)
	if bar.To != 0 && s.shows(bar.To) {
		text += " – " + b.label(bar.To)
		end = s.at(bar.To)
		c.line(to, y+thick/2-1, end, y+thick/2-1, color(series), 2)
		c.line(end, y+1, end, y+thick-3, color(series), 2)
	}
	c.add(`<rect x="%.1f" y="%.1f" width="%.1f" height="%d" fill="%s"><title>%s</title></rect>`,
		min(from, to), y, math.Abs(to-from), thick-2, color(series), escape(title+": "+text+" "+b.Unit))
	c.text(end+5, middle, "start", dark, text)
}

// scale leaves room for the labels on the left, for the longest bar's label on the right,
// and for part of the shortest bar on a logarithmic axis, which has no zero.
func (b *Bars) scale() scale {
	var values []float64
	longest, widest := 0, 0
	for _, g := range b.Groups {
		longest = max(longest, len([]rune(g.Label)))
		for _, bar := range g.Bars {
			values = append(values, bar.Value)
			if b.Log {
				values = append(values, bar.Value/2)
			}
			said := len(b.label(bar.Value)) + 1
			if bar.To != 0 {
				values = append(values, bar.To)
				said += 3 + len(b.label(bar.To))
			}
			widest = max(widest, said)
		}
	}
	s := newScale(values, b.Log)
	s.from = margin + 8 + min(letter*float64(longest), width/2)
	s.to = width - margin - letter*float64(widest)
	return s
}

func (b *Bars) label(x float64) string {
	if b.Label != nil {
		return b.Label(x)
	}
	return Number(x)
}
