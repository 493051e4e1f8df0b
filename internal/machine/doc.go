// Package machine inspects the machine that a server runs on: its name and system, the file
// descriptors of the process, and whether directories and files are writable.
//
// It imports the standard library, x/sys for access checks, and status for the list that
// operators see. It changes nothing on the machine.
package machine
