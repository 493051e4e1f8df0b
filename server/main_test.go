package server

import (
	"testing"

	"github.com/zkgo/zkgo/tests/kit/cost"
)

func TestMain(m *testing.M) { cost.Main(m) }
