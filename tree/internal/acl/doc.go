// Package acl interns access control lists and evaluates them. All znodes with equal
// lists share one Entry, which is prepared for many checks if the list is long.
//
// A list and its identities are immutable once interned. The package knows neither znodes
// nor transactions; it imports proto and the standard library only.
package acl
