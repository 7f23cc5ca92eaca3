package cli

import (
	"errors"

	"k8s.io/apimachinery/pkg/api/resource"
)

// ByteSize is a flag of so many bytes, written as Kubernetes writes memory: 64Mi.
type ByteSize int64

// Set implements pflag.Value.
func (b *ByteSize) Set(text string) error {
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return errors.New("it is a number of bytes such as 500000, 64Mi or 1Gi")
	}
	n, whole := quantity.AsInt64()
	if !whole {
		return errors.New("it is no whole number of bytes, or too large a one")
	}
	*b = ByteSize(n)
	return nil
}

// String implements pflag.Value.
func (b *ByteSize) String() string {
	if *b == 0 {
		return "" // the server's default, which the usage names
	}
	return resource.NewQuantity(int64(*b), resource.BinarySI).String()
}

// Type implements pflag.Value.
func (b *ByteSize) Type() string { return "bytes" }
