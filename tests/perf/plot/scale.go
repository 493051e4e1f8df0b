package plot

import (
	"fmt"
	"math"
	"strconv"
)

// scale maps values to coordinates.
type scale struct {
	log      bool
	lo, hi   float64 // values at the ends
	step     float64 // distance between ticks, if not logarithmic
	from, to float64 // coordinates of the ends
}

// newScale makes room for all values. A linear scale begins at 0 unless there are negative
// values; a logarithmic one covers whole decades.
func newScale(values []float64, log bool) scale {
	s := scale{log: log, lo: math.Inf(1), hi: math.Inf(-1)}
	for _, v := range values {
		if s.shows(v) {
			s.lo, s.hi = min(s.lo, v), max(s.hi, v)
		}
	}
	if s.lo > s.hi { // nothing to show
		s.lo, s.hi = 1, 1
	}
	if log {
		s.lo, s.hi = math.Pow(10, math.Floor(math.Log10(s.lo))), math.Pow(10, math.Ceil(math.Log10(s.hi)))
		if s.lo == s.hi {
			s.hi *= 10
		}
		return s
	}
	s.lo, s.hi = min(s.lo, 0), max(s.hi, 0)
	if s.lo == s.hi {
		s.hi = 1
	}
	s.step = round((s.hi - s.lo) / 5)
	s.lo, s.hi = math.Floor(s.lo/s.step)*s.step, math.Ceil(s.hi/s.step)*s.step
	return s
}

// shows reports whether the scale has a place for a value: a logarithmic one has none for 0.
func (s *scale) shows(v float64) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && (!s.log || v > 0)
}

// at returns the coordinate of a value.
func (s *scale) at(v float64) float64 {
	part := (v - s.lo) / (s.hi - s.lo)
	if s.log {
		part = math.Log(v/s.lo) / math.Log(s.hi/s.lo)
	}
	return s.from + part*(s.to-s.from)
}

// round rounds a distance up to 1, 2 or 5 times a power of ten.
func round(rough float64) float64 {
	decade := math.Pow(10, math.Floor(math.Log10(rough)))
	for _, n := range []float64{1, 2, 5} {
		if n*decade >= rough {
			return n * decade
		}
	}
	return 10 * decade
}

// ticks returns the values that get a line: the decades, with 2 and 5 times each if there
// are few.
func (s *scale) ticks() (all []float64) {
	if !s.log {
		for i := math.Round(s.lo / s.step); i*s.step <= s.hi+s.step/2; i++ {
			all = append(all, i*s.step)
		}
		return all
	}
	between := []float64{1}
	if s.hi/s.lo < 1e3 {
		between = []float64{1, 2, 5}
	}
	for d := s.lo; d < s.hi*1.001; d *= 10 {
		for _, n := range between {
			if n*d < s.hi*1.001 {
				all = append(all, n*d)
			}
		}
	}
	return all
}

// Number formats a figure with up to three digits. Labels use it by default.
func Number(x float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if math.Abs(x) >= unit.size*0.9995 {
			return digits(x/unit.size) + unit.name
		}
	}
	return digits(x)
}

func digits(x float64) string {
	if x == 0 {
		return "0"
	}
	places := max(0, 2-int(math.Floor(math.Log10(math.Abs(x))+1e-9)))
	shown, err := strconv.ParseFloat(fmt.Sprintf("%.*f", places, x), 64)
	if err != nil {
		return fmt.Sprint(x)
	}
	return strconv.FormatFloat(shown, 'f', -1, 64)
}
