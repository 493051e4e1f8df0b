package zoocfg

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Error is an error in a configuration: its place if known, the key, and the expected
// value.
type Error struct {
	File string
	Line int // 0 if the error isn't in a single line
	Key  string
	Msg  string
	Err  error // the cause, if programs can check for it
}

// Error returns a message of the form file:line: key: message.
func (e *Error) Error() string {
	return place(e.File, e.Line) + label(e.Key) + e.Msg
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Warning is a problem in a valid configuration that an operator should know about.
type Warning struct {
	File    string
	Line    int // 0 if the warning isn't about a single line
	Key     string
	Nearest string // the known key most similar to an unknown one, or ""
	Msg     string
}

// String returns a message of the form file:line: key: message.
func (w Warning) String() string {
	return place(w.File, w.Line) + label(w.Key) + w.Msg
}

func place(file string, line int) string {
	switch {
	case file == "" && line == 0:
		return ""
	case line == 0:
		return file + ": "
	case file == "":
		return fmt.Sprintf("line %d: ", line)
	}
	return fmt.Sprintf("%s:%d: ", file, line)
}

func label(key string) string {
	if key == "" || strings.ContainsAny(key, "\r\n") {
		return ""
	}
	return key + ": "
}

// Refused is the error of a configuration that also has warnings, which may name the
// cause: a misspelt key is a warning, and the missing key is the error.
type Refused struct {
	Err      error
	Warnings []Warning
}

// Error returns the errors and then the warnings, one a line.
func (r *Refused) Error() string {
	var b strings.Builder
	b.WriteString(r.Err.Error())
	for _, w := range r.Warnings {
		b.WriteString("\nwarning: " + w.String())
	}
	return b.String()
}

// Unwrap returns the errors.
func (r *Refused) Unwrap() []error { return []error{r.Err} }

// refused adds the warnings to an error, which may be nil.
func (c *Config) refused(err error) error {
	if err == nil || len(c.Warnings) == 0 {
		return err
	}
	return &Refused{Err: err, Warnings: slices.Clone(c.Warnings)}
}

// origin is the place where a key was set.
type origin struct {
	file string
	line int
}

// fail returns an error about a key, located where the key was set last.
func (c *Config) fail(key string, err error) *Error {
	o := c.origin[key]
	if o.file == "" {
		o.file = c.Path
	}
	return &Error{File: o.file, Line: o.line, Key: key, Msg: err.Error(), Err: err}
}

// warn adds a warning unless it exists already.
func (c *Config) warn(key, nearest, format string, args ...any) {
	o := c.origin[key]
	if o.file == "" {
		o.file = c.Path
	}
	w := Warning{File: o.file, Line: o.line, Key: key, Nearest: nearest, Msg: fmt.Sprintf(format, args...)}
	c.Warnings = appendNew(c.Warnings, w)
}

func appendNew(all []Warning, w Warning) []Warning {
	if slices.Contains(all, w) {
		return all
	}
	return append(all, w)
}

// maxProblems limits the number of errors listed for one configuration.
const maxProblems = 100

// problems collects the errors of one configuration, in the order of the checks.
type problems struct {
	list []error
	// keys are the keys with an error. They have no value, so we ignore errors that mention
	// them in addUnless.
	keys []string
}

// add adds err, which may be nil or join several errors.
func (p *problems) add(err error) {
	if err == nil {
		return
	}
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range several.Unwrap() {
			p.add(err)
		}
		return
	}
	if len(p.list) == maxProblems {
		p.list = append(p.list, errors.New("there are more errors: only the first are listed"))
	}
	if len(p.list) > maxProblems {
		return
	}
	p.list = append(p.list, err)
	var e *Error
	if errors.As(err, &e) && e.Key != "" {
		p.keys = append(p.keys, e.Key)
	}
}

// addUnless adds the error of a check across keys, unless the error mentions a key
// that has an error itself and so is only a consequence.
func (p *problems) addUnless(err error) {
	if err == nil {
		return
	}
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range several.Unwrap() {
			p.addUnless(err)
		}
		return
	}
	for _, key := range p.keys {
		if strings.Contains(err.Error(), key) {
			return
		}
	}
	p.add(err)
}

// members reports whether a line of the membership has an error.
func (p *problems) members() bool {
	return slices.ContainsFunc(p.keys, func(key string) bool { return isMember(key) || key == "dynamicConfigFile" })
}

// join returns nil if there are no errors, and a single error unwrapped.
func (p *problems) join() error {
	if len(p.list) == 1 {
		return p.list[0]
	}
	return errors.Join(p.list...)
}
