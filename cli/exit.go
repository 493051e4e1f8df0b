package cli

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

// refuse is an error with exit code 1.
func refuse(message string) error { return &Exit{Code: 1, Message: message} }
