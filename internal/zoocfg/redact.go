package zoocfg

import "strings"

// hidden replaces a secret.
const hidden = "********"

// RedactedText returns Text with all secret values hidden: passwords, and the super
// user's digest, which allows offline guessing of the password.
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

// secret reports whether the value of key is secret.
func secret(key string) bool {
	key = strings.ToLower(key)
	return strings.HasSuffix(key, "password") || strings.HasSuffix(key, ".superdigest")
}
