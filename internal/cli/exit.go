package cli

import "fmt"

// Exit is an error with its own message and exit code.
type Exit struct {
	// Code is the exit code of the process if this was its last command.
	Code int
	// Message is printed unchanged; "" prints nothing.
	Message string
	// Err is the cause, or nil.
	Err error
}

// Error returns the message.
func (e *Exit) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Exit) Unwrap() error { return e.Err }

// Exit codes of commands: codeFailed if the command failed, codeUsage if the command
// line is invalid.
const (
	codeFailed = 1
	codeUsage  = 2
)

// refuse returns the error of a command that failed.
func refuse(message string) error { return &Exit{Code: codeFailed, Message: message} }

// misuse returns the error for an invalid command line.
func misuse(format string, args ...any) error {
	return &Exit{Code: codeUsage, Message: fmt.Sprintf(format, args...)}
}
