package plot

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// element is an element of an SVG with its text and its title's text.
type element struct {
	name        string
	attr        map[string]string
	text, title string
}

func (e *element) number(t *testing.T, attr string) float64 {
	x, err := strconv.ParseFloat(e.attr[attr], 64)
	if err != nil {
		t.Fatalf("%s of %+v: %v", attr, e, err)
	}
	return x
}

// parse fails the test unless the text is well-formed.
func parse(t *testing.T, svg string) (all []*element) {
	t.Helper()
	var open []*element
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%v:\n%s", err, svg)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := &element{name: token.Name.Local, attr: map[string]string{}}
			for _, a := range token.Attr {
				e.attr[a.Name.Local] = a.Value
			}
			open, all = append(open, e), append(all, e)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if n := len(open); n > 1 && open[n-1].name == "title" {
				open[n-2].title += string(token)
			} else if n > 0 {
				open[n-1].text += string(token)
			}
		}
	}
}

// marks returns the elements of a name that have a title.
func marks(all []*element, name string) []*element {
	return slices.DeleteFunc(slices.Clone(all), func(e *element) bool { return e.name != name || e.title == "" })
}

func hasTexts(t *testing.T, all []*element, texts ...string) {
	t.Helper()
	for _, want := range texts {
		if !slices.ContainsFunc(all, func(e *element) bool { return e.name == "text" && e.text == want }) {
			t.Errorf("nothing says %q", want)
		}
	}
}

// inside fails the test if a mark is not on the canvas.
func inside(t *testing.T, all []*element) {
	t.Helper()
	high := all[0].number(t, "height")
	for _, e := range all {
		for attr, limit := range map[string]float64{"x": width, "x1": width, "x2": width, "cx": width, "y": high, "y1": high, "y2": high, "cy": high} {
			if e.attr[attr] == "" {
				continue
			}
			if v := e.number(t, attr); v < 0 || v > limit {
				t.Errorf("%s of %+v is not within 0 and %v", attr, e, limit)
			}
		}
	}
}

func bars(log bool) *Bars {
	return &Bars{Title: "A & B", Unit: "ops/s", Log: log, Series: []string{"<zkgo>", "ZooKeeper"}, Groups: []Group{
		{Label: "get \"64×1\"", Bars: []Bar{{Value: 0.1}, {Value: 31_234}}},
		{Label: "set", Bars: []Bar{{Value: 100, To: 5000}, {Value: math.NaN()}}},
		{Label: "create", Bars: []Bar{{Value: 0}}},
	}}
}

func TestBars(t *testing.T) {
	t.Parallel()
	for _, log := range []bool{false, true} {
		text := bars(log).SVG()
		if text != bars(log).SVG() {
			t.Error("another text for the same figures")
		}
		all := parse(t, text)
		inside(t, all)
		hasTexts(t, all, "A & B", "<zkgo>", "ZooKeeper", "ops/s", "get \"64×1\"", "set", "create", "0.1", "31.2k", "100 – 5k", "–")
		found := marks(all, "rect")
		if want := map[bool]int{false: 4, true: 3}[log]; len(found) != want { // 0 has no logarithm
			t.Fatalf("logarithmic %v: %d bars instead of %d", log, len(found), want)
		}
		wide := []float64{found[0].number(t, "width"), found[2].number(t, "width"), found[1].number(t, "width")}
		if !slices.IsSorted(wide) || wide[0] == wide[1] || wide[1] == wide[2] {
			t.Errorf("logarithmic %v: bars of 0.1, 100 and 31,234 are %v wide", log, wide)
		}
		if log && wide[0] < 10 {
			t.Errorf("the shortest bar is %v wide", wide[0])
		}
		if !strings.HasPrefix(found[1].title, "ZooKeeper, get \"64×1\": 31.2k ops/s") {
			t.Errorf("title %q", found[1].title)
		}
	}
}

func TestBarsLabel(t *testing.T) {
	t.Parallel()
	b := bars(true)
	b.Label = func(x float64) string { return strconv.FormatFloat(x, 'f', 0, 64) + "!" }
	hasTexts(t, parse(t, b.SVG()), "31234!", "100! – 5000!")
	if all := parse(t, (&Bars{Title: "empty", Log: true}).SVG()); len(marks(all, "rect")) != 0 {
		t.Error("bars of nothing")
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	for _, logX := range []bool{false, true} {
		for _, logY := range []bool{false, true} {
			l := Lines{Title: "Memory", X: "znodes", Y: "MiB", LogX: logX, LogY: logY, Series: []Series{
				{"zkgo", []Point{{10, 3}, {1000, 5}, {1e6, 300}}}, {"ZooKeeper & co", []Point{{10, 90}, {1e6, 1200}, {2e6, math.NaN()}}}}}
			all := parse(t, l.SVG())
			inside(t, all)
			hasTexts(t, all, "Memory", "znodes", "MiB", "zkgo", "ZooKeeper & co")
			points := marks(all, "circle")
			if len(points) != 5 {
				t.Fatalf("%d points instead of 5", len(points))
			}
			for i := range 2 {
				if points[i].number(t, "cx") >= points[i+1].number(t, "cx") || points[i].number(t, "cy") <= points[i+1].number(t, "cy") {
					t.Errorf("%+v is not left of and below %+v", points[i], points[i+1])
				}
			}
			var joined []string
			for _, p := range points[:3] {
				joined = append(joined, p.attr["cx"]+","+p.attr["cy"])
			}
			if !slices.ContainsFunc(all, func(e *element) bool { return e.attr["points"] == strings.Join(joined, " ") }) {
				t.Errorf("no line through %v", joined)
			}
		}
	}
}

func TestScale(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values []float64
		log    bool
		ticks  []float64
	}{
		{[]float64{3, 42}, false, []float64{0, 10, 20, 30, 40, 50}},
		{[]float64{-5, 5}, false, []float64{-6, -4, -2, 0, 2, 4, 6}},
		{[]float64{0}, false, []float64{0, 0.2, 0.4, 0.6, 0.8, 1}},
		{nil, false, []float64{0, 0.2, 0.4, 0.6, 0.8, 1}},
		{[]float64{0, 3, 42}, true, []float64{1, 2, 5, 10, 20, 50, 100}},
		{[]float64{7, 12_000}, true, []float64{1, 10, 100, 1000, 10_000, 100_000}},
		{[]float64{100}, true, []float64{100, 200, 500, 1000}},
		{nil, true, []float64{1, 2, 5, 10}},
	} {
		s := newScale(c.values, c.log)
		s.from, s.to = 100, 500
		got := s.ticks()
		if !slices.EqualFunc(got, c.ticks, func(a, b float64) bool { return math.Abs(a-b) < 1e-9*max(1, b) }) {
			t.Errorf("%v, logarithmic %v: ticks %v instead of %v", c.values, c.log, got, c.ticks)
		}
		if s.at(got[0]) != 100 || math.Abs(s.at(got[len(got)-1])-500) > 1e-6 {
			t.Errorf("%v: from %v to %v", c.values, s.at(got[0]), s.at(got[len(got)-1]))
		}
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]string{0: "0", 0.5: "0.5", 0.0123: "0.0123", 12.34: "12.3", 123.4: "123", 999.7: "1k", 1000: "1k", 1234: "1.23k",
		31_234: "31.2k", 2_345_678: "2.35M", 1e9: "1G", -1500: "-1.5k"} {
		if got := Number(x); got != want {
			t.Errorf("%v: %q instead of %q", x, got, want)
		}
	}
}
