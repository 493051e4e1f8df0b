// Package spelling measures the distance between two words, to suggest a correction for a typo.
//
// It imports the standard library only.
package spelling

import "strings"

// Distance returns the number of insertions, deletions, replacements and swaps of
// neighboring letters that turn one text into the other.
func Distance(a, b string) int {
	var before []int
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

// Similar returns the name that a mistyped word probably means, or "" if none is
// similar. A similar name differs in a few letters or contains the word.
func Similar(word string, names []string) string {
	best, least := "", max(1, len(word)/3)+1
	for _, name := range names {
		if d := Distance(strings.ToLower(word), strings.ToLower(name)); d < least {
			best, least = name, d
		}
	}
	if best != "" || len(word) < 3 {
		return best
	}
	for _, name := range names {
		if strings.Contains(strings.ToLower(name), strings.ToLower(word)) && (best == "" || len(name) < len(best)) {
			best = name
		}
	}
	return best
}

// Hint returns a sentence that suggests the most similar name, or lists the names if none is
// similar. It's meant for the end of an error about an unknown word.
func Hint(word string, names []string) string {
	switch near := Similar(word, names); {
	case near != "":
		return ". Did you mean " + near + "?"
	case len(names) == 0:
		return ""
	}
	return "; there are " + strings.Join(names, ", ")
}
