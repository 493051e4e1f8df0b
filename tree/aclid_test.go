package tree

import (
	"strings"
	"testing"
	"time"
)

// longName returns a valid distinguished name with n attributes and 20 n blanks at
// its end.
func longName(n int) string { return strings.Repeat("CN=a,", n) + "CN=a" + strings.Repeat(" ", 20*n) }

// A name is checked in linear time. Half a megabyte needs milliseconds. Searching for the
// end of its blanks at each attribute would need 12 seconds.
func TestLongNamesAreCheckedInLinearTime(t *testing.T) {
	t.Parallel()
	for _, name := range []string{longName(20_000), strings.Repeat(" ", 400_000) + longName(20_000) + ",", strings.Repeat("CN=\\,\"+\";", 100_000)} {
		start := time.Now()
		validX500(name)
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("%d bytes take %v", len(name), took)
		}
	}
}

// Blanks around a name and its attributes don't count, but blanks alone are no attribute.
func TestBlanksInNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"":                            true,
		" \t\n":                       true,
		" CN=a ":                      true,
		" CN = a , O = b\u00a0\u2003": true,
		"CN=a,":                       false,
		"CN=a, ":                      false,
		"CN=a,\u2003":                 false,
		"CN=a,,O=b":                   false,
		", CN=a":                      false,
		"CN=a\\, ":                    true,
		"CN=a\\ ":                     true,
		"CN=\"a, ":                    true,
	} {
		if validX500(name) != want {
			t.Errorf("%q: %v, want %v", name, !want, want)
		}
	}
}

func BenchmarkLongName(b *testing.B) {
	name := longName(20_000)
	b.SetBytes(int64(len(name)))
	for b.Loop() {
		validX500(name)
	}
}
