package cli

import "fmt"

// Exit is an error with its own message and exit code.
type Exit struct {
	// Code is what the process ends with if this was its last command.
	Code int
	// Message is printed as it is; nothing is printed if it is "".
	Message string
	// Err is the cause, if there is one.
	Err error
}

// Error returns the message.
func (e *Exit) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Exit) Unwrap() error { return e.Err }

// Exit codes of commands: a command that was understood and failed, and a command
// line that is wrong.
const (
	codeFailed = 1
	codeUsage  = 2
)

// refuse is the error of a command that failed.
func refuse(message string) error { return &Exit{Code: codeFailed, Message: message} }

// misuse is the error of a command line that is wrong.
func misuse(format string, args ...any) error {
	return &Exit{Code: codeUsage, Message: fmt.Sprintf(format, args...)}
}
