"""What the programs of bench/ share: where their results go."""
import json
import pathlib


def add_options(parser):
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--table", type=pathlib.Path)


def write(args, head, row, results):
    """`row` makes a line of the table, whose first lines are `head`, of one result."""
    if args.json:
        args.json.write_text(json.dumps({"schema": 1, "results": results}, indent=1) + "\n")
    if args.table:
        args.table.write_text("\n".join([head] + [row(r) for r in results]) + "\n")
