package conformance

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// expand unrolls the loops of a block and substitutes their variables, so that
// the plain sequence of statements is left.
func expand(block []line, vars map[string]string) ([]line, error) {
	var flat []line
	for _, l := range block {
		if l.words[0] == "for" {
			turns, err := unroll(l, vars)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", l.no, err)
			}
			flat = append(flat, turns...)
			continue
		}
		plain := line{no: l.no}
		for _, word := range l.words {
			word, err := substitute(word, vars)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", l.no, err)
			}
			plain.words = append(plain.words, word)
		}
		if l.block != nil {
			inner, err := expand(l.block, vars)
			if err != nil {
				return nil, err
			}
			plain.block = append([]line{}, inner...)
		}
		flat = append(flat, plain)
	}
	return flat, nil
}

// unroll repeats the block of "for V in A B C" or "for V in 1..9".
func unroll(l line, vars map[string]string) ([]line, error) {
	if len(l.words) < 4 || l.words[2] != "in" || l.block == nil {
		return nil, fmt.Errorf("want: for V in A B C { … }")
	}
	var values []string
	for _, word := range l.words[3:] {
		word, err := substitute(word, vars)
		if err != nil {
			return nil, err
		}
		low, high, isRange := strings.Cut(word, "..")
		from, err1 := strconv.Atoi(low)
		to, err2 := strconv.Atoi(high)
		if !isRange || err1 != nil || err2 != nil {
			values = append(values, word)
			continue
		}
		for i := from; i <= to; i++ {
			values = append(values, strconv.Itoa(i))
		}
	}
	inner := maps.Clone(vars)
	if inner == nil {
		inner = make(map[string]string)
	}
	var flat []line
	for _, value := range values {
		inner[l.words[1]] = value
		turn, err := expand(l.block, inner)
		if err != nil {
			return nil, err
		}
		flat = append(flat, turn...)
	}
	return flat, nil
}

// Requests returns how many requests the script sends, not counting connects.
func (s *Script) Requests() (int, error) {
	flat, err := expand(s.body, nil)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, l := range flat {
		switch {
		case l.words[0] == "connect", len(l.words) == 1:
			n += len(l.block)
		case isRequest(l.words[1]):
			n++
		}
	}
	return n, nil
}

func isRequest(word string) bool {
	_, known := opNamed(word)
	return known
}
