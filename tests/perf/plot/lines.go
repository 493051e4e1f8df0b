package plot

import "strings"

// Lines is a chart of lines with a point for each value.
type Lines struct {
	Title      string
	X, Y       string // the axes' titles
	LogX, LogY bool
	Series     []Series
}

// Series is a line through points, which must be sorted by X. It leaves out points that a
// logarithmic axis can't show.
type Series struct {
	Name   string
	Points []Point
}

// Point is a pair of values.
type Point struct{ X, Y float64 }

// plotHeight is the height of the area within the axes.
const plotHeight = 380

// SVG draws the chart.
func (l *Lines) SVG() string {
	var c canvas
	var names []string
	var xs, ys []float64
	for _, s := range l.Series {
		names = append(names, s.Name)
		for _, p := range s.Points {
			xs, ys = append(xs, p.X), append(ys, p.Y)
		}
	}
	top := c.head(l.Title, names) + 20
	x, y := newScale(xs, l.LogX), newScale(ys, l.LogY)
	x.from, x.to = margin+60, width-margin-24
	y.from, y.to = top+plotHeight, top
	l.axes(&c, &x, &y)
	for i, s := range l.Series {
		s.draw(&c, &x, &y, i)
	}
	return c.svg(y.from + 36 + margin)
}

func (l *Lines) axes(c *canvas, x, y *scale) {
	for _, v := range x.ticks() {
		at := x.at(v)
		c.line(at, y.from, at, y.to, grid, 1)
		c.text(at, y.from+16, "middle", pale, Number(v))
	}
	for _, v := range y.ticks() {
		at := y.at(v)
		c.line(x.from, at, x.to, at, grid, 1)
		c.text(x.from-6, at+4, "end", pale, Number(v))
	}
	c.line(x.from, y.from, x.to, y.from, dark, 1)
	c.line(x.from, y.from, x.from, y.to, dark, 1)
	c.text((x.from+x.to)/2, y.from+36, "middle", pale, l.X)
	c.text(margin, y.to-10, "start", pale, l.Y)
}

func (s *Series) draw(c *canvas, x, y *scale, n int) {
	var path strings.Builder
	var marks canvas
	for _, p := range s.Points {
		if !x.shows(p.X) || !y.shows(p.Y) {
			continue
		}
		marks.add(`<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"><title>%s</title></circle>`,
			x.at(p.X), y.at(p.Y), color(n), escape(s.Name+": "+Number(p.X)+", "+Number(p.Y)))
		if path.Len() > 0 {
			path.WriteByte(' ')
		}
		path.WriteString(point(x.at(p.X), y.at(p.Y)))
	}
	c.add(`<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`, path.String(), color(n))
	c.WriteString(marks.String())
}
