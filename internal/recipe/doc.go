// Package recipe contains the steps that several recipes share: retrying after a lost
// connection, waiting for watches, and creating parents.
//
// May import: of this module only client and recipes.
package recipe
