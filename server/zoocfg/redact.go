package zoocfg

import "strings"

// hidden stands in place of a secret.
const hidden = "********"

// RedactedText is Text with every value hidden that opens a door: passwords, and
// the super user's digest, against which passwords can be tried offline.
func (c *Config) RedactedText() string {
	var starts []int // of the natural lines
	for r := (lineReader{text: c.Text}); r.pos < len(c.Text); r.natural() {
		starts = append(starts, r.pos)
	}
	starts = append(starts, len(c.Text))
	var b strings.Builder
	done := 0
	for r := (lineReader{text: c.Text, line: 1}); r.next(); {
		p, err := splitProperty(r.logical)
		if err != nil || !secret(strings.TrimSpace(p.key)) {
			continue
		}
		from, to := starts[r.start-1], starts[r.line-1]
		b.WriteString(c.Text[done:from])
		b.WriteString(p.key + "=" + hidden)
		if end := strings.TrimRight(c.Text[from:to], "\r\n"); len(end) < to-from {
			b.WriteString(c.Text[from+len(end) : to])
		}
		done = to
	}
	b.WriteString(c.Text[done:])
	return b.String()
}

// secret reports whether nobody but the server should see the value of key.
func secret(key string) bool {
	key = strings.ToLower(key)
	return strings.HasSuffix(key, "password") || strings.HasSuffix(key, ".superdigest")
}
