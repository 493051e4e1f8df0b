package zoocfg

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Error is a configuration that cannot be used. It says where, as far as that
// is known, which key, and what was expected.
type Error struct {
	File string
	Line int // 0 if no single line is at fault
	Key  string
	Msg  string
	Err  error // the cause, if it is one a program can tell apart
}

// Error has the form file:line: key: message.
func (e *Error) Error() string {
	return place(e.File, e.Line) + label(e.Key) + e.Msg
}

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// Warning is something in a valid configuration that a person should know.
type Warning struct {
	File    string
	Line    int // 0 if it is not about one line
	Key     string
	Nearest string // the known key an unknown one resembles, or ""
	Msg     string
}

// String has the form file:line: key: message.
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

// origin is where a key was set.
type origin struct {
	file string
	line int
}

// fail makes an error about a key, placed where the key was last set.
func (c *Config) fail(key string, err error) *Error {
	o := c.origin[key]
	if o.file == "" {
		o.file = c.Path
	}
	return &Error{File: o.file, Line: o.line, Key: key, Msg: err.Error(), Err: err}
}

// warn records a warning, once.
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

// maxProblems is how many errors of one configuration are listed.
const maxProblems = 100

// problems are the errors of one configuration, in the order of the checks.
type problems struct {
	list []error
	// keys are those of the errors: what is checked across keys is not at fault
	// where one of them has no value.
	keys []string
}

// add keeps err, which may be nil, or may join several errors.
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

// addUnless keeps the error of a check across keys, unless it only follows from a
// key that is at fault itself.
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

// members reports whether a line of the membership is at fault.
func (p *problems) members() bool {
	return slices.ContainsFunc(p.keys, func(key string) bool { return isMember(key) || key == "dynamicConfigFile" })
}

// join returns nil without errors, and the error itself if there is one only.
func (p *problems) join() error {
	if len(p.list) == 1 {
		return p.list[0]
	}
	return errors.Join(p.list...)
}
