// Package mapped looks after the memory that mapped files take up. Where the
// system does not tell, or cannot be told, it does nothing.
package mapped
