"""A very small program, for docs/contribute/includes.md to include."""


# --8<-- [start:halve]
def halve(values):
    return [value / 2 for value in values]


# --8<-- [end:halve]

if __name__ == "__main__":
    print(halve([1.0, 2.0]))
